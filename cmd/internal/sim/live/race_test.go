//go:build race

package live_test

// underRace reports whether the race detector watches.
const underRace = true
