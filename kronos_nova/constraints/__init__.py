"""Why an instance may not go somewhere: each reason its own module and an entry point of
``kronos_nova.constraints``, which compiles it into rules of the model."""
