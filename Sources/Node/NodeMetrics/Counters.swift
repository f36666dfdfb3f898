import Synchronization
import Core
import Waku

/// The counters and histograms of a node since the start of the process. Adding takes one atomic instruction, without a lookup or lock.
public final class Counters: Sendable {
    /// The metrics of all groups, for scraping.
    package let registry: MetricRegistry
    /// The counters of all groups, in their order.
    package let declared: [Counter]
    /// By ``Counter/index``; nil for counters that are in none of the groups.
    private let cells: [CounterCell?]
    private let opened: CounterCell
    /// By ``ProtocolLabel/index``; nil for protocols that the node does not speak.
    private let protocols: [ProtocolCells?]
    /// nil when messages are not traced.
    package let tracer: MessageTracer?

    private let started = ContinuousClock.now
    /// The time of the last message, in nanoseconds since the start.
    private let lastMessage = Atomic<Int64>(0)

    /// The metrics of one protocol's messages.
    private struct ProtocolCells: Sendable {
        /// By ``KindLabel/place``.
        let valid: [CounterCell?]
        let answers: [HistogramCell]
        /// By ``StageLabel`` and ``KindLabel/place``.
        let latencies: [Latency?]
        /// By ``KindLabel/place``.
        let replyDelays: [HistogramCell?]

        init(_ label: ProtocolLabel, _ registry: MetricRegistry) {
            valid = KindLabel.allCases.map { registry.counter(.valid, label, $0) }
            answers = KindLabel.allCases.map { registry.histogram(.sinceReceipt, label, StageLabel.answered, $0) }
            replyDelays = KindLabel.allCases.map { registry.histogram(.replyDelay, label, $0) }
            latencies = StageLabel.allCases.flatMap { stage in
                KindLabel.allCases.map { kind in
                    guard stage.concerns(kind) else { return nil }
                    return Latency(
                        sinceReceipt: stage == .received ? nil : registry.histogram(.sinceReceipt, label, stage, kind),
                        sinceSent: registry.histogram(.sinceSent, label, stage, kind))
                }
            }
        }

        /// A protocol without Waku messages: registrations are answered over a connection, requests come from servers that await no answer, and
        /// neither has a sender's timestamp.
        init(withoutWaku label: ProtocolLabel, _ registry: MetricRegistry) {
            valid = KindLabel.allCases.map { _ in nil }
            answers = [registry.histogram(.sinceReceipt, label, StageLabel.answered, KindLabel.registration)]
            replyDelays = KindLabel.allCases.map { _ in nil }
            latencies = StageLabel.allCases.flatMap { stage in
                KindLabel.allCases.map { kind in
                    switch (stage, kind) {
                    case (.durable, .registration), (.answered, .registration), (.durable, .request), (.accepted, .request):
                        Latency(sinceReceipt: registry.histogram(.sinceReceipt, label, stage, kind), sinceSent: nil)
                    default: nil
                    }
                }
            }
        }
    }

    private struct Latency: Sendable {
        let sinceReceipt: HistogramCell?
        let sinceSent: HistogramCell?
    }

    /// - Parameters:
    ///   - groups: The groups of all modules of the node. Metrics are shown in this order.
    ///   - labels: The protocols that the node speaks. Messages of other protocols are not measured.
    ///   - withoutWaku: Those of them that have no Waku topics.
    ///   - tracer: traces messages, which carry their traces in ``MessageTimes``; nil: none.
    package init(
        _ groups: [MetricGroup], protocols labels: Set<ProtocolLabel> = [.status], withoutWaku: Set<ProtocolLabel> = [],
        tracer: MessageTracer? = nil
    ) {
        self.tracer = tracer
        let metrics = groups.flatMap(\.metrics)
        let registry = MetricRegistry(metrics)
        self.registry = registry
        declared = groups.flatMap(\.counters)
        var cells = [CounterCell?](repeating: nil, count: (declared.map(\.index).max() ?? -1) + 1)
        for counter in declared { cells[counter.index] = counter.series.map { registry.counter($0.metric, $0.labels) } ?? CounterCell() }
        self.cells = cells
        opened = registry.counter(.opened)
        var protocols = [ProtocolCells?](repeating: nil, count: (labels.map(\.index).max() ?? -1) + 1)
        for label in labels.sorted(by: { $0.index < $1.index }) {
            protocols[label.index] =
                withoutWaku.contains(label) ? ProtocolCells(withoutWaku: label, registry) : ProtocolCells(label, registry)
        }
        self.protocols = protocols
        // Creates the series, so that histograms without labels are shown from the start.
        for metric in metrics where metric.labels.isEmpty { _ = registry.histogram(metric) }
    }

    package func add(_ counter: Counter, _ count: Int = 1) {
        guard count != 0 else { return }
        guard counter.index < cells.count, let cell = cells[counter.index] else {
            return assertionFailure("the counter \(counter) is in no group")
        }
        cell.increment(by: Int64(count))
    }

    /// All counters above 0.
    package var snapshot: [Counter: Int] {
        var counts: [Counter: Int] = [:]
        for counter in declared {
            let count = count(counter)
            if count != 0 { counts[counter] = count }
        }
        return counts
    }

    package func count(_ counter: Counter) -> Int {
        counter.index < cells.count ? cells[counter.index].map { Int($0.value) } ?? 0 : 0
    }

    // MARK: Messages

    /// Counts messages received from the relay. A batch of which only the node's own probe was taken is empty, and ends no silence.
    package func received(_ count: Int) {
        guard count > 0 else { return }
        add(.received, count)
        lastMessage.store(started.duration(to: .now).nanoseconds, ordering: .relaxed)
    }

    /// The time since the last message, or since the start if there was none.
    package var silence: Duration {
        started.duration(to: .now) - .nanoseconds(lastMessage.load(ordering: .relaxed))
    }

    /// Counts messages that were decrypted.
    ///
    /// - Parameter others: Number of decrypted messages that are invalid.
    package func opened(_ valid: some Collection<(kind: KindLabel, times: MessageTimes?)>, others: Int) {
        guard !valid.isEmpty || others > 0 else { return }
        opened.increment(by: Int64(valid.count + others))
        for (kind, times) in valid {
            cells(of: times)?.valid[kind.place]?.increment(by: 1)
            reached(.valid, kind, times: times)
            if let delay = times?.delay { latency(.received, of: kind, times: times)?.sinceSent?.recordNanoseconds(delay.nanoseconds) }
        }
    }

    /// Records the time until a message reached a stage.
    ///
    /// - Parameter held: the time for which its answer was held, which is not included.
    package func reached(_ stage: StageLabel, _ kind: KindLabel, times: MessageTimes?, without held: Duration = .zero) {
        guard let times else { return }
        let now = ContinuousClock.now
        if let trace = times.trace, let stage = stage.traced { trace.mark(stage, kind, held: held, at: now) }
        guard let latency = latency(stage, of: kind, times: times) else { return }
        let elapsed = times.received.duration(to: now) - held
        latency.sinceReceipt?.recordNanoseconds(elapsed.nanoseconds)
        if let delay = times.delay { latency.sinceSent?.recordNanoseconds((delay + elapsed).nanoseconds) }
    }

    /// Messages without times are counted as those of the deployed protocol.
    private func cells(of times: MessageTimes?) -> ProtocolCells? {
        let index = (times?.protocol ?? .status).index
        return index < protocols.count ? protocols[index] : nil
    }

    private func latency(_ stage: StageLabel, of kind: KindLabel, times: MessageTimes?) -> Latency? {
        cells(of: times)?.latencies[stage.rawValue * KindLabel.allCases.count + kind.place]
    }

    /// Records how long an answer was held until it was due.
    package func held(_ kind: KindLabel, for time: Duration, _ times: MessageTimes?) {
        cells(of: times)?.replyDelays[kind.place]?.recordNanoseconds(time.nanoseconds)
    }

    /// Valid messages since the start, of all protocols, by ``KindLabel/place``.
    package var validCounts: [Int] {
        KindLabel.allCases.map { kind in protocols.reduce(0) { $0 + Int($1?.valid[kind.place]?.value ?? 0) } }
    }

    /// Cumulative numbers of answers since the start for each bound; the last is the total.
    package var answerTimes: [Int64] {
        var sums: [Int64] = []
        for histogram in protocols.compactMap({ $0?.answers }).joined() {
            let counts: [Int64] = histogram.cumulativeCounts
            sums = sums.isEmpty ? counts : zip(sums, counts).map { $0 + $1 }
        }
        return sums
    }

    /// The median and the 99th percentile of the time to answer, in seconds, between two such lists; infinite beyond the last bound.
    package func percentiles(from old: [Int64], to new: [Int64]) -> (half: Double, most: Double)? {
        let counts = zip(old, new).map { $1 - $0 }
        guard let all = counts.last, all > 0, case .histogram(let bounds) = Metric.sinceReceipt.kind else { return nil }
        func bound(_ share: Double) -> Double {
            zip(bounds, counts).first { Double($1) >= share * Double(all) }?.0 ?? .infinity
        }
        return (bound(0.5), bound(0.99))
    }

    // MARK: Rare events

    /// Adds to a series without a declared ``Counter``. Looks the series up under a lock, so use it for rare events only.
    package func increment(_ metric: Metric, _ labels: any MetricLabel..., by count: Int64 = 1) {
        registry.counter(metric, labels).increment(by: count)
    }

    /// Records a duration in a histogram, with the same lookup.
    package func record(_ duration: Duration, in metric: Metric, _ labels: any MetricLabel...) {
        registry.histogram(metric, labels).recordNanoseconds(duration.nanoseconds)
    }
}

extension StageLabel {
    /// Whether messages of this kind reach the stage: queries store nothing, and only requests go to gorush.
    package func concerns(_ kind: KindLabel) -> Bool {
        switch self {
        case .received, .valid, .answered: true
        case .durable: kind != .query
        case .accepted: kind == .request
        }
    }

    /// nil for the receipt, with which a trace begins, and for the acceptance, which is recorded where notifications end.
    fileprivate var traced: TraceStage? {
        switch self {
        case .received, .accepted: nil
        case .valid: .decoded
        case .durable: .committed
        case .answered: .answered
        }
    }
}

extension KindLabel {
    package var place: Int {
        switch self {
        case .registration: 0
        case .query: 1
        case .request: 2
        }
    }
}
