package api

// Members are the processes that joined.
type Members struct {
	Members []Member `json:"members"`
}

// Member is a process that joined.
type Member struct {
	Member      string            `json:"member"`
	Name        string            `json:"name"`
	Incarnation string            `json:"incarnation"`
	Shared      bool              `json:"shared" doc:"Another living member has the same name"`
	Health      string            `json:"health"`
	Host        string            `json:"host"`
	PID         int               `json:"pid"`
	Version     string            `json:"version,omitempty"`
	Address     string            `json:"address,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Started     *Time             `json:"started"`
	Uptime      Duration          `json:"uptime"`
	LastBeat    *Time             `json:"last_beat"`
	Silence     Duration          `json:"silence"`
	CPU         float64           `json:"cpu,omitempty"`
	Memory      int64             `json:"memory,omitempty"`
	Workers     []Worker          `json:"workers"`
	Running     []Running         `json:"running" doc:"Messages in a handler, the 20 that have run the longest"`
}

// Worker is one worker of a member.
type Worker struct {
	Instance    string    `json:"instance"`
	Concurrency int       `json:"concurrency"`
	Running     int       `json:"running"`
	Zombies     int       `json:"zombies"`
	Handlers    []Handler `json:"handlers"`
	Omitted     int       `json:"omitted,omitempty"`
}

// Handler is one handler of a worker.
type Handler struct {
	Topic     string   `json:"topic"`
	Group     string   `json:"group"`
	State     string   `json:"state"`
	Quiet     bool     `json:"quiet"`
	Error     string   `json:"error,omitempty"`
	Running   int      `json:"running"`
	Waiting   int      `json:"waiting"`
	Acked     uint64   `json:"acked"`
	Retried   uint64   `json:"retried"`
	Dead      uint64   `json:"dead"`
	Dropped   uint64   `json:"dropped"`
	PerSecond float64  `json:"per_second"`
	ErrorRate float64  `json:"error_rate"`
	Mean      Duration `json:"mean"`
}

// Running is one message in a handler.
type Running struct {
	Topic   string   `json:"topic"`
	Group   string   `json:"group"`
	ID      string   `json:"id"`
	Key     string   `json:"key,omitempty"`
	Attempt int      `json:"attempt"`
	For     Duration `json:"for"`
	Zombie  bool     `json:"zombie"`
}

// Command is what a member is told to do.
type Command struct {
	Do          string `json:"do" enum:"quiet,resume,scale,cancel"`
	Worker      string `json:"worker,omitempty"`
	Topic       string `json:"topic,omitempty"`
	Group       string `json:"group,omitempty"`
	ID          string `json:"id,omitempty" doc:"Of the message to cancel"`
	Concurrency int    `json:"concurrency,omitempty" minimum:"0"`
}

// SchedulePage is a page of schedules.
type SchedulePage struct {
	Schedules []Schedule `json:"schedules"`
	Next      string     `json:"next,omitempty"`
}

// Schedule is a schedule and how far it is.
type Schedule struct {
	Name     string      `json:"name"`
	State    string      `json:"state" enum:"active,paused,ended"`
	Spec     string      `json:"spec"`
	Zone     string      `json:"zone,omitempty"`
	Missed   string      `json:"missed,omitempty"`
	Until    *Time       `json:"until,omitempty"`
	Jitter   Duration    `json:"jitter,omitempty"`
	Next     *Time       `json:"next,omitempty"`
	Last     *Time       `json:"last,omitempty"`
	Problem  string      `json:"problem,omitempty"`
	Revision uint64      `json:"revision"`
	Edited   *Time       `json:"edited,omitempty"`
	Topic    string      `json:"topic"`
	Message  *NewMessage `json:"message,omitempty"`
	Hidden   bool        `json:"hidden,omitempty" doc:"The body is left out: whoever asks lacks the scope payload"`
}

// PutSchedule makes a schedule, or changes the one of that name.
type PutSchedule struct {
	Spec    string     `json:"spec" maxLength:"1024"`
	Zone    string     `json:"zone,omitempty"`
	Missed  string     `json:"missed,omitempty" enum:"once,skip,all"`
	Until   *Time      `json:"until,omitempty"`
	Jitter  Duration   `json:"jitter,omitempty"`
	Paused  bool       `json:"paused,omitempty"`
	Topic   string     `json:"topic"`
	Message NewMessage `json:"message"`
}

// Ticks are the next ticks of a spec.
type Ticks struct {
	Ticks []Time `json:"ticks"`
}

// ActionPage is a page of actions, the newest first.
type ActionPage struct {
	Actions []Action `json:"actions"`
	Next    string   `json:"next,omitempty"`
}

// Action is something that an operator did, or was not allowed to do.
type Action struct {
	Sequence  uint64 `json:"sequence"`
	At        *Time  `json:"at"`
	Who       string `json:"who"`
	What      string `json:"what"`
	Topic     string `json:"topic,omitempty"`
	Group     string `json:"group,omitempty"`
	Filter    string `json:"filter,omitempty"`
	Detail    string `json:"detail,omitempty"`
	Count     int64  `json:"count,omitempty"`
	Outcome   string `json:"outcome" enum:"done,failed,denied"`
	RequestID string `json:"request_id,omitempty"`
	Hash      string `json:"hash"`
}

// ActionVerdict tells whether the chain of actions is whole.
type ActionVerdict struct {
	Checked  int      `json:"checked"`
	Newest   uint64   `json:"newest"`
	Head     string   `json:"head,omitempty"`
	Problems []string `json:"problems"`
}
