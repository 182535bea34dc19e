package gateway

import "github.com/ferrymq/ferry/internal/frame"

// What the document of the routes shows. The tests send each example of a request, and read each of an answer.

var pathExamples = map[string]string{"topic": "orders", "group": "billing", "id": "order-1", "name": "billing",
	"call": "hello"}

var publishHeaders = []parameter{
	{"Idempotency-Key", "The id of the message: the same again is stored once, for as long as the answer says", "",
		"order-1"},
	{"Ferry-Key", "Messages of one key are delivered in order, one at a time", "", "ann"},
	{"Ferry-Delay", "How long it waits", "", "1.5s"},
	{"Ferry-At", "When it is due, in RFC 3339, in place of a delay", "", nil},
	{"Ferry-Ttl", "After which it is not delivered any more", "", "1h"},
	{"Ferry-Priority", "low, normal, high or urgent", "", "high"},
	{"Ferry-Dedup-Id", "Another message with the same is not stored within the window", "", "cart-9"},
	{"Ferry-Dedup-Window", "How long a dedup id counts", "", "5m"},
	{"Ferry-Max-Attempts", "After how many it is a dead letter", 0, 3},
}

var publishBodies = []content{
	{"*/*", nil, ""},
	{"text/plain", "", "hello"},
	{jsonType, nil, `{"id": 1}`},
	{linesType, message{}, `{"id": "order-2", "key": "ann", "json": {"id": 2}, "delay": "10s"}` + "\n" +
		`{"body": "hello", "priority": "high"}` + "\n"},
	{batchType, []message{}, `[{"id": "order-3", "json": {"id": 3}, "headers": {"trace": "7f"}, "retry": {"base": "1s", "cap": "1m"}}, {"body_base64": "/w=="}]`},
	{frame.ContentType, nil, ""},
}

// publishAnswers: 201 for one message that is new, 200 for one that was there, and for many.
var publishAnswers = map[int][]content{
	201: inJSON(receipt{}, `{"id": "order-1", "id_window": "10m0s"}`),
	200: inJSON(oneOf{receipts{}, receipt{}}, `{"receipts": [{"id": "order-2", "id_window": "10m0s"}, {"error": `+
		problemExample+`}]}`),
}

const (
	receiveExample = `{"max": 10, "wait": "5s", "lease": "30s", "settle": [{"lease": "n7c2.JBSWY3DPEHPK3PXP.1.5u0bXw", "outcome": "ack"}]}`

	deliveryExample = `{"lease": "n7c2.JBSWY3DPEHPK3PXP.2.x4qkZg", "lease_for": "30s", "attempt": 1, "deliveries": 1, "cause": "first", ` +
		`"id": "order-1", "topic": "orders", "group": "billing", "key": "ann", "json": {"id": 1}, "content_type": "application/json", "published_at": "2026-01-31T08:00:00.000Z"}`
	receivedExample = `{"messages": [` + deliveryExample + `], "settled": [{"ok": true}]}`

	settleExample = `{"settle": [{"lease": "n7c2.JBSWY3DPEHPK3PXP.2.x4qkZg", "outcome": "ack", "emit": [{"topic": "invoices", "json": {"order": 1}}], "result": {"json": {"invoice": 7}}}, ` +
		`{"lease": "n7c2.JBSWY3DPEHPK3PXP.3.9dWb1A", "outcome": "retry", "after": "30s", "error": "the bank is closed"}]}`
	settledExample  = `{"settled": [{"ok": true}, {"ok": false, "error": ` + lostExample + `}]}`
	extendExample   = `{"leases": ["n7c2.JBSWY3DPEHPK3PXP.2.x4qkZg"]}`
	extendedExample = `{"extended": [{"ok": true}]}`
	statusExample   = `{"state": "done", "ended": true, "attempt": 1, "json": {"invoice": 7}, "content_type": "application/json", "at": "2026-01-31T08:00:01.000Z"}`

	pushExample     = `{"topic": "orders", "group": "billing", "url": "https://billing.example/hook", "concurrency": 10, "timeout": "10s", "paused": false}`
	pushedExample   = `{"topic": "orders", "group": "billing", "url": "https://billing.example/hook", "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "concurrency": 10, "timeout": "10s", "paused": false}`
	hiddenExample   = `{"topic": "orders", "group": "billing", "url": "https://billing.example/hook", "concurrency": 10, "timeout": "10s", "paused": false}`
	pushListExample = `{"push": {"billing": {"topic": "orders", "group": "billing", "url": "https://billing.example/hook", "concurrency": 10, "timeout": "10s", "paused": false, ` +
		`"health": {"state": "failing", "failures": 3, "last_error": "the endpoint answered with status 502", "last_error_at": "2026-01-31T08:00:01.000Z"}}}}`

	eventExample = `{"specversion": "1.0", "id": "order-1", "source": "/topics/orders", "type": "ferry.message", "datacontenttype": "application/json", "data": {"id": 1}, ` +
		`"ferrylease": "n7c2.JBSWY3DPEHPK3PXP.2.x4qkZg", "ferryleasefor": "30s", "ferryattempt": "1", "partitionkey": "ann"}`

	problemExample = `{"title": "Bad Request", "status": 400, "code": "invalid", "detail": "there is no priority \"loud\"", "hint": "use low, normal, high or urgent", "request_id": "0198f2"}`
	lostExample    = `{"title": "Conflict", "status": 409, "code": "lease_lost", "detail": "the gateway holds no such delivery for this client", ` +
		`"hint": "extend leases in time; the message is delivered again"}`
)

var (
	streamQuery = []parameter{
		{"max", "How many may be unsettled: more come when some are settled", 0, 100},
		{"lease", "How long each is this client's; as the broker recommends if it is left out", "", "30s"},
	}
	streamAnswers = map[int][]content{200: {
		{linesType, delivery{}, deliveryExample + "\n"},
		{eventsType, delivery{}, "data: " + deliveryExample + "\n\n"},
	}}
	receiveAnswers = []content{
		{jsonType, received{}, receivedExample},
		{"application/cloudevents+json", map[string]any{}, eventExample},
		{"*/*", nil, ""}, // the data of an event in binary mode
		{eventBatchType, []map[string]any{}, "[" + eventExample + "]"},
	}
	resultQuery = []parameter{{"wait", "How long to wait until it has ended", "", "5s"}}
)
