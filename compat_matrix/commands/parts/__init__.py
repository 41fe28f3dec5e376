"""Parts that commands share, and subcommands that have a module of their own."""
