"""The module that Spark discovers: it makes ``format("penstock")`` known without a line of set-up."""

from penstock.spark.data_source.source import PenstockDataSource as DefaultSource

__all__ = ["DefaultSource"]
