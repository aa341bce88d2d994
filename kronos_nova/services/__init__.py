"""Functions that carry out the operations of the contract. Each module has the operations of one
noun, such as "plans"."""
