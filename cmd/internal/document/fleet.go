package document

import (
	"io"

	"github.com/rooftop-dev/rooftop/engine/fleet"
)

// FleetSchema names the document that WriteFleet writes.
const FleetSchema = "rooftop.fleet/v1"

// WriteFleet writes servers, in their order, as one rooftop.fleet/v1 document.
func WriteFleet(w io.Writer, list []fleet.Server) error {
	servers := each(list, func(s *fleet.Server) Object {
		return Object{
			{"name", s.Name},
			{"deployment", s.Deployment},
			{"unread", s.Unread},
			{"target", s.Target},
			{"windows", s.Windows},
			{"outcome", s.Outcome},
			{"condition", conditionOf(&s.Diagnosis)},
			{"recommendation", s.Recommendation},
			{"output_gain", s.Gain()},
			{"saves_usd_per_hour", s.Waste()},
			{"measured", measured(&s.Diagnosis)},
			{"doubt", s.Doubt},
		}
	})
	return Write(w, Object{{"schema", FleetSchema}, {"servers", servers}, {"findings", fleet.Findings(list)}})
}
