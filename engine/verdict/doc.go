// Package verdict says what a change brought, and how sure that is: two trials of
// a server, one before and one after, set side by side, with an interval about
// every difference that repeats of one configuration would seldom leave.
//
//	[Looks]   the times at which a trial is looked at: looking often must not
//	          raise the rate of false alarms
//	[Judge]   steady state, intervals, traffic, comparability, objectives, direction
//	[Widen]   restart-to-restart spread, from what is known of this server
//
// It knows nothing of vLLM, of rules or of flags; it is pure, and equal inputs
// give equal bytes: its only randomness is a source seeded by the plan.
package verdict
