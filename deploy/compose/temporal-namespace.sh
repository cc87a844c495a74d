#!/bin/sh
# The namespace of TEMPORAL_NAMESPACE, where it is not there yet. `horarium setup` does the rest.
set -eu

temporal operator cluster health
temporal operator namespace describe --namespace "$TEMPORAL_NAMESPACE" >/dev/null 2>&1 ||
    temporal operator namespace create --namespace "$TEMPORAL_NAMESPACE" --retention 72h
