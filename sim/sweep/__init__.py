"""Many runs from one file: planned, run on Spark or on processes, stored as Parquet, analysed and reported."""
