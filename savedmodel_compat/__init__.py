"""The public Python of savedmodel-compat beside `reference_impl`: see `savedmodel_compat.keras`."""
