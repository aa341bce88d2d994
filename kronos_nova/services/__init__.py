"""Functions that carry out the operations of the contract (the operations of the API and of
commands). Each module has the operations of one noun, such as "plans"."""
