package loadgen

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/collect/probe"
)

// key identifies a conversation for random draws: its client and number.
func (t *talk) key() [2]uint64 { return [2]uint64{uint64(t.client + 1), t.number} }

// begin draws the properties of a whole conversation.
func (o *Offer) begin(t *talk) {
	l, key := &o.load, t.key()
	t.session, t.turns = -1, 1
	if l.Trace != nil {
		t.traced = o.traced(t)
		t.turns = max(1, len(t.traced.Turns))
	} else if turns := l.turns(); turns.most() > 1 {
		t.turns = turns.draw(stream(l.Seed, forTurns, key[:]...))
	}
	if t.turns > 1 {
		t.session = o.sessions
		o.sessions++
	}
	if len(l.Adapters) > 0 {
		t.model = l.Adapters[pick(stream(l.Seed, forModel, key[:]...), o.models)].Model
	}
}

// traced returns the trace's entry for a conversation. Each client of a closed loop takes every
// n-th, so that its entries do not depend on the other clients.
func (o *Offer) traced(t *talk) *Traced {
	at := t.number
	if t.client >= 0 {
		at = t.number*uint64(clientsOf(o.schedule.most())) + uint64(t.client)
	}
	all := o.load.Trace.Requests
	return &all[at%uint64(len(all))]
}

// write returns the next request of a conversation.
func (o *Offer) write(t *talk, at time.Duration) Intent {
	l, key := &o.load, t.key()
	draw := func(p purpose) *rand.Rand { return stream(l.Seed, p, key[0], key[1], uint64(t.turn)) }
	i := Intent{
		At: at, IgnoreEOS: l.IgnoreEOS, Model: t.model, Session: t.session, Turn: t.turn, Deadline: l.Deadline,
	}
	var system, user string
	switch {
	case t.traced != nil && len(t.traced.Turns) > 0:
		turn := &t.traced.Turns[t.turn]
		user, i.MaxTokens = turn.Text, max(1, turn.OutputTokens)
		i.PromptTokens = t.tokens + l.tokensIn(user)
	case t.traced != nil:
		i.MaxTokens, i.PromptTokens = max(1, t.traced.OutputTokens), max(1, t.traced.PromptTokens)
		user = l.blocks(t.traced, draw(forText))
	default:
		i.MaxTokens = l.OutputTokens.draw(draw(forOutputLength))
		system, user, i.PromptTokens = o.turnText(t, draw)
	}
	t.fillIntent(l, &i, system, user)
	if l.Cancel > 0 && i.MaxTokens > 1 {
		if cancel := draw(forCancel); cancel.Float64() < l.Cancel {
			i.CancelAfter = 1 + cancel.IntN(i.MaxTokens-1)
		}
	}
	return i
}

// turnText generates the text of a turn and the shared prefix, which belongs to the first turn, and to a
// later one if all turns before it failed. tokens is the length of the prompt including previous
// turns.
func (o *Offer) turnText(t *talk, draw func(purpose) *rand.Rand) (prefix, text string, tokens int) {
	l := &o.load
	if t.turn > 0 {
		n := max(1, l.PromptTokens.draw(draw(forPromptLength))-l.SharedPrefixTokens)
		units := max(1, l.units(n))
		tokens = t.tokens + n
		if t.tokens == 0 {
			prefix, tokens = o.prefix(t), n+l.SharedPrefixTokens
		}
		return prefix, string(l.write(make([]byte, 0, units*l.bytesPerUnit()), draw(forText), units)), tokens
	}
	n := max(l.SharedPrefixTokens+1, l.PromptTokens.draw(draw(forPromptLength)))
	units := max(1, l.units(n)-l.units(l.SharedPrefixTokens))
	return o.prefix(t), string(l.write(make([]byte, 0, units*l.bytesPerUnit()), draw(forText), units)), n
}

// prefix returns the shared prefix of a conversation.
func (o *Offer) prefix(t *talk) string {
	l, key := &o.load, t.key()
	units := l.units(l.SharedPrefixTokens)
	if units == 0 {
		return ""
	}
	// All turns of a conversation have the group of its first turn.
	group := stream(l.Seed, forGroup, key[0], key[1], 0).IntN(l.groups())
	return string(l.prefix(make([]byte, 0, units*l.bytesPerUnit()), group))
}

// blocks writes the prompt of a traced request: the text of each of its blocks, which is the same
// wherever the block occurs, or unique text without blocks.
func (l *Load) blocks(r *Traced, own *rand.Rand) string {
	tokens := max(1, r.PromptTokens)
	text := make([]byte, 0, l.units(tokens)*l.bytesPerUnit())
	if len(r.Blocks) == 0 {
		return string(l.write(text, own, max(1, l.units(tokens))))
	}
	for i, block := range r.Blocks {
		from, to := i*BlockTokens, min((i+1)*BlockTokens, tokens)
		if i == len(r.Blocks)-1 {
			to = tokens
		}
		text = l.write(text, stream(l.Seed, forBlockText, block), l.units(to)-l.units(from))
	}
	if len(text) == 0 {
		return string(l.write(text, own, 1))
	}
	return string(text)
}

// fillIntent writes previous turns and the new one to the intent.
func (t *talk) fillIntent(l *Load, i *Intent, system, user string) {
	if l.Chat {
		i.Messages = slices.Clone(t.messages)
		if system != "" {
			i.Messages = append(i.Messages, probe.Message{Role: "system", Content: system})
		}
		i.Messages = append(i.Messages, probe.Message{Role: "user", Content: user})
		return
	}
	for _, part := range []string{t.text, system, user} {
		if i.Prompt != "" && part != "" && l.Style == Words {
			i.Prompt += " "
		}
		i.Prompt += part
	}
}

// recordTurn adds a turn and its answer to the previous turns.
func (t *talk) recordTurn(i *Intent, answer string, tokens int) {
	t.tokens = i.PromptTokens + tokens
	if i.Messages != nil {
		t.messages = append(slices.Clone(i.Messages), probe.Message{Role: "assistant", Content: answer})
		return
	}
	t.text = i.Prompt + answer
}

// gamma draws from the gamma distribution with scale 1 (Marsaglia and Tsang, A simple method for
// generating gamma variables, 2000).
func gamma(from *rand.Rand, shape float64) float64 {
	if shape < 1 {
		return gamma(from, shape+1) * math.Pow(1-from.Float64(), 1/shape)
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := from.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v *= v * v
		u := 1 - from.Float64()
		if math.Log(u) < x*x/2+d*(1-v+math.Log(v)) {
			return d * v
		}
	}
}
