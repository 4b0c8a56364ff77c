//go:build race

package simlive_test

// underRace says that the race detector watches.
const underRace = true
