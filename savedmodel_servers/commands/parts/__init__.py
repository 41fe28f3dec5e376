"""Parts that commands of this package share, and subcommands that have a module of their own."""
