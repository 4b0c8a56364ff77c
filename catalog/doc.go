// Package catalog holds what is known beforehand: GPUs, models, prices, vLLM's
// flags with their defaults by version, and the names of its metrics. The data
// are embedded YAML, each entry with its source; a user's file can add to them.
// The package does no I/O beyond the embedded files and readers it is handed.
package catalog
