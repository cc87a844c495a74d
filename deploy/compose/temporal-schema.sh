#!/bin/sh
# Temporal's two databases on PostgreSQL: makes what is missing, brings the rest up to the version of this image.
# The password is in SQL_PASSWORD, which the tool reads by itself.
set -eu

bring_up() {
    tool="temporal-sql-tool --plugin postgres12 --ep temporal-db -p 5432 -u temporal --db $1"
    $tool create
    $tool setup-schema -v 0.0
    $tool update-schema -d "/etc/temporal/schema/postgresql/v12/$2/versioned"
}

bring_up temporal temporal
bring_up temporal_visibility visibility
