// Package search finds the next change to try. It weighs the proposals of the rules and the
// predictions of the calibrated model against the trials so far. It is pure: a Search with equal
// fields finds the same change.
package search
