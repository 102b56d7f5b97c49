package hook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sluice-ml/sluice/api/v1alpha1"
)

// maxListRequest bounds one list that is sent, in bytes; more goes in several messages, one after the other. A single
// review may be larger.
const maxListRequest = 8 << 20

// listMessage is a v1alpha1.TaskReviewList whose items are encoded already.
type listMessage struct {
	v1alpha1.TypeMeta
	Templates map[string]json.RawMessage `json:"templates,omitempty"`
	Items     []json.RawMessage          `json:"items"`
}

// parcel is what goes into one message.
type parcel struct {
	message listMessage
	size    int
	places  []int // of its items among the deliveries
	points  map[string]v1alpha1.Point
	number  int
}

// postList sends several reviews as lists. It gives one outcome for each.
func (c *client) postList(ctx context.Context, hook Hook, deliveries []delivery) []outcome {
	outcomes := make([]outcome, len(deliveries))
	for _, p := range pack(deliveries, outcomes) {
		answers, err := c.postParcel(ctx, hook, p)
		for _, place := range p.places {
			if err != nil {
				outcomes[place].err = err
				continue
			}
			a := answers[deliveries[place].request.UID]
			outcomes[place] = outcome{response: a.Response, err: a.Err}
			if _, nonsense := errors.AsType[v1alpha1.Problems](a.Err); nonsense {
				outcomes[place].err = fmt.Errorf("bad answer: %w", a.Err)
			}
		}
	}
	return outcomes
}

// pack puts deliveries into parcels of bounded size. Templates stand once in a parcel, apart from the items. What cannot
// be written gets its outcome here.
func pack(deliveries []delivery, outcomes []outcome) []*parcel {
	var parcels []*parcel
	var p *parcel
	for i, d := range deliveries {
		r := *d.request
		r.Task.TemplateSpec = nil
		if r.Task.TemplateDigest == "" {
			r.Task.TemplateSpec = d.request.Task.TemplateSpec
		}
		item, err := encode(v1alpha1.TaskReviewItem{Request: &r})
		if err != nil {
			outcomes[i].err = fmt.Errorf("the request cannot be written: %w", err)
			continue
		}
		if p == nil || p.size+len(item) > maxListRequest {
			p = &parcel{points: map[string]v1alpha1.Point{}, message: listMessage{
				TypeMeta:  v1alpha1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindTaskReviewList},
				Templates: map[string]json.RawMessage{},
			}}
			parcels = append(parcels, p)
		}
		if digest := r.Task.TemplateDigest; digest != "" && !d.digest && p.message.Templates[digest] == nil {
			p.message.Templates[digest] = d.request.Task.TemplateSpec
			p.size += len(d.request.Task.TemplateSpec)
		}
		p.message.Items = append(p.message.Items, item)
		p.size += len(item)
		p.places = append(p.places, i)
		p.points[r.UID] = r.Point
		p.number = max(p.number, d.number)
	}
	return parcels
}

func (c *client) postParcel(ctx context.Context, hook Hook, p *parcel) (map[string]v1alpha1.ListAnswer, error) {
	body, err := encode(p.message)
	if err != nil {
		return nil, fmt.Errorf("the request cannot be written: %w", err)
	}
	limit := min(len(p.places)*v1alpha1.MaxAnswerBytes, v1alpha1.MaxListBytes)
	data, err := c.post(ctx, hook, body, p.number, limit)
	if err != nil {
		return nil, err
	}
	answers, err := v1alpha1.DecodeResponseList(data, p.points)
	if err != nil {
		return nil, fmt.Errorf("bad answer: %w", err)
	}
	return answers, nil
}
