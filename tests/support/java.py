"""Options for a JVM that lives for seconds, and would spend them on compiling."""

QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
