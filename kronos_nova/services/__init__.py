"""The functions behind the operations of the contract, one noun a module."""
