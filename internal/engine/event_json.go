package engine

// UnmarshalJSON reads an event as it was written: whole numbers stay exact, however large.
func (e *Event) UnmarshalJSON(data []byte) error {
	type plain Event
	if err := decode(data, (*plain)(e)); err != nil {
		return err
	}
	if e.Start != nil {
		normalMap(e.Start.Run.Parameters)
		normalArtifacts(e.Start.Run.Artifacts)
	}
	if e.Finished != nil {
		e.Finished.Result.Outputs.normal()
	}
	if e.Answered != nil {
		e.Answered.Answer.normal()
	}
	if e.Resume != nil {
		normalMap(e.Resume.Outputs)
	}
	if e.RetryRun != nil {
		normalMap(e.RetryRun.Parameters)
	}
	return nil
}

// normal brings decoded values into the form that all values have here.
func (a *Answer) normal() {
	normalMap(a.Placeholders)
	if a.Inputs != nil {
		normalMap(a.Inputs.Parameters)
		normalArtifacts(a.Inputs.Artifacts)
	}
	if a.Outputs != nil {
		a.Outputs.normal()
	}
}
