// Package catalog holds reference data: GPUs, CPUs, models, prices, vLLM's flags with their defaults
// by version, and the names of its metrics. The data are embedded YAML files, in which each entry
// has its source; a user's file can add entries. The package reads only the embedded files and the
// readers that callers pass.
package catalog
