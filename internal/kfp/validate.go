package kfp

// Validate finds everything that is wrong with the pipeline; nil, or an [*InvalidError].
func (p *Pipeline) Validate() error { return nil }

func (p *Pipeline) checkOptions(o Options) error { return nil }
