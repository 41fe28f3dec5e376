"""Writers that are killed, stopped by the disk or met by others; see
property_tests/test_faults.py.
"""
