// Package verdict judges a change: it compares two trials of a server, one before and one
// after, with an interval for every difference that repeats of one configuration would
// seldom exceed.
//
//	[Looks]   the times of interim looks, which must not raise the rate of
//	          false alarms
//	[Judge]   steady state, intervals, traffic, comparability, objectives, direction
//	[Widen]   spread between restarts, from data on this server or on
//	          siblings measured at the same time ([SiblingDifferences])
//
// It does not depend on vLLM, rules or flags. It is pure and without randomness.
package verdict
