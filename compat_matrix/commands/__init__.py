"""One module per subcommand of ``savedmodel-compat``; imported only when that subcommand is asked for."""
