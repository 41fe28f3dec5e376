"""What commands share, and their subcommands where these are modules of their own."""
