package vllmsim

// ladders are the bucket bounds of one server (vLLM v1/metrics/buckets.py). They
// are the same from 0.10 to 0.32.
type ladders struct {
	tokens []float64 // 1-2-5 up to max_model_len
}

func newLadders(maxModelLen int) ladders {
	var tokens []float64
	for scale := 1; ; scale *= 10 {
		for _, m := range [...]int{1, 2, 5} {
			if m*scale > maxModelLen {
				return ladders{tokens: tokens}
			}
			tokens = append(tokens, float64(m*scale))
		}
	}
}

// bounds returns the upper bounds of a histogram's buckets, in seconds, tokens or counts, without the last
// one, +Inf.
func (l ladders) bounds(h hist) []float64 {
	switch h {
	case histPromptTokens, histGenerationTokens, histMaxGenerationTokens, histMaxTokens, histPrefillComputed:
		return l.tokens
	case histIterationTokens:
		return []float64{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}
	case histN:
		return []float64{1, 2, 5, 10, 20}
	case histPreemptions:
		return []float64{1, 2, 3, 4, 5, 10, 20}
	case histTTFT:
		return []float64{
			0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
			1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
		}
	case histITL, histTPOT:
		return []float64{
			0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75,
			1, 2.5, 5, 7.5, 10, 20, 40, 80,
		}
	default: // the phases of a request
		return []float64{
			0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60,
			120, 240, 480, 960, 1920, 7680,
		}
	}
}
