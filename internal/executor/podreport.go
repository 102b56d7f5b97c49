package executor

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"unicode/utf8"

	"github.com/sluice-ml/sluice/internal/executor/spec"
)

// maxWords bounds a message in a report that must be short, in bytes.
const maxWords = 600

// report leaves the result of the main container where its pod's status shows it, says in the log what is wrong beyond
// what the command did, and gives the result as it was reported.
func (p *pod) report(r spec.Result) spec.Result {
	p.sayWrong(r)
	if p.name != p.spec.Main {
		return r // the pod's status says how it ended
	}
	report, err := p.fit(&r)
	if err == nil {
		err = p.leave(report)
	}
	if err != nil {
		p.say(err.Error())
		r.Phase, r.Message = spec.Error, err.Error()
	}
	return r
}

// sayWrong says what nobody can know from what the command itself has printed.
func (p *pod) sayWrong(r spec.Result) {
	for _, w := range r.Warnings {
		p.say("warning: " + w)
	}
	if r.Phase == spec.Succeeded || r.Phase == "" || r.Stopped {
		return
	}
	if r.ExitCode != nil && r.Message == fmt.Sprintf("%s: Error (exit code %d)", p.name, *r.ExitCode) {
		return
	}
	p.say(r.Message)
}

// fit makes the report: the result where it is short enough, else word of where it is.
func (p *pod) fit(r *spec.Result) (spec.Report, error) {
	whole, err := json.Marshal(spec.Report{Result: r})
	if err != nil {
		return spec.Report{}, fmt.Errorf("encode the result: %w", err)
	}
	if len(whole) <= spec.MaxTermination {
		return spec.Report{Result: r}, nil
	}
	reason := fmt.Sprintf("the result has %d bytes, more than the %d that a termination message takes", len(whole), spec.MaxTermination)
	short := shorten(*r)
	if data, err := json.Marshal(spec.Report{Result: &short}); err == nil && len(data) <= spec.MaxTermination && sameOutputs(short, *r) {
		*r = short
		return spec.Report{Result: r}, nil
	}
	if p.endpoint == nil {
		p.fail(r, reason+", and the task has no endpoint to send it to")
		return spec.Report{Result: r}, nil
	}
	data, err := json.Marshal(r)
	if err != nil {
		return spec.Report{}, fmt.Errorf("encode the result: %w", err)
	}
	if failed := p.handIn(data); failed != nil {
		p.fail(r, reason+": "+failed.Error())
		return spec.Report{Result: r}, nil //nolint:nilerr // the failure is in the result
	}
	sum := sha256.Sum256(data)
	return spec.Report{Stored: true, Digest: hex.EncodeToString(sum[:])}, nil
}

// fail makes an Error of a result whose outputs cannot be handed on. What failed before is what people want to hear of.
func (p *pod) fail(r *spec.Result, why string) {
	*r = shorten(*r)
	r.Stdout, r.Parameters, r.Artifacts, r.Reported, r.Containers = nil, nil, nil, nil, nil
	if r.Phase == spec.Succeeded {
		r.Phase, r.Message = spec.Error, clip(why)
	} else {
		r.Message = clip(r.Message + "; " + why)
	}
	p.say(why)
}

// shorten leaves out the warnings, which are in the log, and the end of a long message.
func shorten(r spec.Result) spec.Result {
	r.Warnings, r.Message = nil, clip(r.Message)
	return r
}

func clip(text string) string {
	if len(text) <= maxWords {
		return text
	}
	end := maxWords
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// sameOutputs says whether nothing but words was left out.
func sameOutputs(short, whole spec.Result) bool {
	return short.Stdout == whole.Stdout && len(short.Parameters) == len(whole.Parameters) &&
		len(short.Artifacts) == len(whole.Artifacts) && len(short.Reported) == len(whole.Reported)
}

// leave writes the report where the kubelet takes it from.
func (p *pod) leave(report spec.Report) error {
	data, err := json.Marshal(report)
	if err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}
	// The file is there, and this process' user may write it but make none beside it.
	f, err := os.OpenFile(p.places.TerminationLog, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o666)
	if err == nil {
		_, err = f.Write(data)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("leave the result for the kubelet: %w", err)
	}
	return nil
}
