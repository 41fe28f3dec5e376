"""The public Python API of savedmodel-compat beside `reference_impl`; see
`savedmodel_compat.keras`.
"""
