"""`signatures` is the name under which plug-ins of earlier versions find `signature_spec`."""
