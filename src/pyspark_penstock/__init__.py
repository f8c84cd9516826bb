"""The module that Spark discovers: it makes ``format("penstock")`` known without a line of set-up."""
