"""Functions that carry out the operations of the contract. The contract lists the operations that
the API and the commands offer. Each module has the operations of one noun, such as "plans"."""
