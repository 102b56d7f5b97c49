package argo

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

var (
	// nameForm is what an object's name may be: a DNS subdomain.
	nameForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)
	// generateNameForm may end in a dash.
	generateNameForm = regexp.MustCompile(`^[a-z0-9][-a-z0-9.]*$`)
	labelKeyForm     = regexp.MustCompile(`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)
	labelValueForm   = regexp.MustCompile(`^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`)
	// scheduleForm is what an API server takes for a schedule.
	scheduleForm   = regexp.MustCompile(`^(@(yearly|annually|monthly|weekly|daily|midnight|hourly)|@every\s+([0-9]+(ns|us|µs|ms|s|m|h))+|([A-Za-z0-9*,/?-]+\s+){4}[A-Za-z0-9*,/?-]+)$`)
	metricNameForm = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
)

// The longest names that Argo takes: names are label values, and a CronWorkflow's workflows add a time to its name.
const (
	maxName     = 63
	maxCronName = 52
)

// object checks what an object of any kind has: its metadata, and what only its kind has.
func (v *validator) object(d *document) {
	p := place{doc: d}
	meta := d.tree.get("metadata")
	name, generate := meta.str("name"), meta.str("generateName")
	limit := maxName
	if d.kind == "CronWorkflow" {
		limit = maxCronName
	}
	switch {
	case name == "" && generate == "" && v.opts.Name == "" && v.opts.GenerateName == "":
		v.add(p.at("metadata.name"), Problem{Warning: true, Message: "is missing; give a name, or a generateName that gets a random ending"})
	case name != "" && !nameForm.MatchString(name):
		v.refuse(p.at("metadata.name"), "%s is not a valid name; use small letters, digits, dashes and dots", shorten(name))
	case len(name) > limit:
		v.invalid(p.at("metadata.name"), fmt.Sprintf("workflow name %q must not be more than %d characters long (currently %d)", name, limit, len(name)),
			"has %d characters; at most %d are allowed", len(name), limit)
	case name == "" && generate != "" && !generateNameForm.MatchString(generate):
		v.refuse(p.at("metadata.generateName"), "%s is not the beginning of a valid name; use small letters, digits, dashes and dots", shorten(generate))
	}
	if labels := meta.get("labels"); labels != nil && labels.kind == mapNode {
		for i, k := range labels.keys {
			v.label(p.at("metadata.labels").at(k), k, labels.items[i].text)
		}
	}
	if o, ok := d.object.(*CronWorkflow); ok {
		v.cron(p.at("spec"), &o.Spec)
	}
}

func (v *validator) label(p place, key, value string) {
	if name := key[strings.LastIndex(key, "/")+1:]; !labelKeyForm.MatchString(key) || len(name) > 63 {
		v.refuse(p, "is not a valid label; use letters, digits, dashes, dots and underscores, at most 63")
	}
	if !hasTag(value) && (!labelValueForm.MatchString(value) || len(value) > 63) {
		v.refuse(p, "%s is not a valid label value; use letters, digits, dashes, dots and underscores, at most 63", shorten(value))
	}
}

// cron checks when a CronWorkflow runs.
func (v *validator) cron(p place, s *CronWorkflowSpec) {
	if s.Schedules != nil && len(s.Schedules) == 0 {
		v.refuse(p.at("schedules"), "must have at least one schedule")
	}
	for i, schedule := range s.Schedules {
		switch _, err := cron.ParseStandard(schedule); {
		case !scheduleForm.MatchString(schedule):
			v.refuse(p.at("schedules").item(i), "%s is not a schedule; write five fields, or @daily and the like", shorten(schedule))
		case err != nil:
			v.refuse(p.at("schedules").item(i), "%s is not a schedule: %v", shorten(schedule), err)
		}
	}
	if s.Timezone != "" {
		if _, err := time.LoadLocation(s.Timezone); err != nil {
			v.refuse(p.at("timezone"), "%s is not a time zone; write one like Europe/Zurich", shorten(s.Timezone))
		}
	}
	v.oneOf(p.at("concurrencyPolicy"), s.ConcurrencyPolicy, "Allow", "Forbid", "Replace")
	if s.StartingDeadlineSeconds != nil && *s.StartingDeadlineSeconds < 0 {
		v.refuse(p.at("startingDeadlineSeconds"), "must not be negative")
	}
}

// unusual warns of a value that is not empty and not among those that mean something.
func (v *validator) unusual(p place, value string, known ...string) {
	if value != "" && !hasTag(value) && !slices.Contains(known, value) {
		v.late(p, "%s means nothing here; use %s", shorten(value), strings.Join(known, ", "))
	}
}

// oneOf refuses a value that is not empty and not among those allowed.
func (v *validator) oneOf(p place, value string, allowed ...string) {
	if value != "" && !hasTag(value) && !slices.Contains(allowed, value) {
		v.refuse(p, "%s is not allowed; use %s", shorten(value), strings.Join(allowed, ", "))
	}
}
