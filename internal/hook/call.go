package hook

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluice-ml/sluice/api/v1alpha1"
)

// delivery is one review of a call.
type delivery struct {
	request *v1alpha1.TaskReviewRequest
	// number counts the calls for this review, from 1.
	number int
	// digest says that the plugin has the template, so that its digest is enough.
	digest bool
}

// outcome is what came of a delivery: a response that the protocol allows, or why there is none.
type outcome struct {
	response *v1alpha1.TaskReviewResponse
	err      error
}

// allFailed is the outcome of a call that failed as a whole.
func allFailed(n int, err error) []outcome {
	outcomes := make([]outcome, n)
	for i := range outcomes {
		outcomes[i].err = err
	}
	return outcomes
}

// call puts reviews to a hook once. It gives one outcome for each.
func (d *Dispatcher) call(ctx context.Context, hook Hook, deliveries []delivery) []outcome {
	spec := &hook.Spec
	if hook.Refused != "" {
		return allFailed(len(deliveries), errors.New(hook.Refused))
	}
	switch {
	case spec.Builtin != nil:
		p, err := d.plugin(hook)
		if err != nil {
			return allFailed(len(deliveries), err)
		}
		outcomes := make([]outcome, len(deliveries))
		for i, delivery := range deliveries {
			outcomes[i] = p.ask(ctx, delivery.request)
		}
		return outcomes
	case spec.HTTP != nil:
		c, err := d.client(hook)
		if err != nil {
			return allFailed(len(deliveries), err)
		}
		if spec.Batch > 1 {
			return c.postList(ctx, hook, deliveries)
		}
		return []outcome{c.postOne(ctx, hook, deliveries[0])}
	}
	return allFailed(len(deliveries), fmt.Errorf("container hooks are not asked by the dispatcher"))
}
