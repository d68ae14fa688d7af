"""Where the data is: tables that stand still and streams that do not, and the requests that may be made of them."""
