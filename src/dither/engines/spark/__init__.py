"""Apache Spark, for tables that one machine does not hold.

dialect    spells a Work for Spark SQL          automaton  regular expressions in linear time
session    connects, classic or Connect         engine     runs a Work
sources    opens tables and files of a catalog

Imports `catalog` and `query` like its neighbours; pyspark only when a catalog of Spark is opened.
Law: no value of the data leaves by an error, a log line or stderr of ours; a task that Spark repeats chooses what it chose.
"""
