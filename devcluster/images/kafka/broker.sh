#!/bin/sh
# Formats the storage on the first start, then becomes the broker.
set -eu
data=/var/lib/kafka
config=/opt/kafka/server.properties
libs='/opt/kafka/libs/*'
if [ ! -f "$data/log/meta.properties" ]; then
    java -cp "$libs" kafka.tools.StorageTool format -t "$(java -cp "$libs" kafka.tools.StorageTool random-uuid)" -c "$config"
fi
# One small broker beside Spark on a small machine: the serial collector has no threads of its own.
exec java -Xms128m -Xmx400m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \
    -Dlog4j2.configurationFile=/opt/kafka/log4j2.properties -cp "$libs" kafka.Kafka "$config"
