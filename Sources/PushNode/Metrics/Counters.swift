import CoreMetrics
import Gorush
public import Prometheus
import StatusProtocol
import Synchronization
import Waku

/// What a node counts and measures since the start of the process. Adding takes an atomic instruction: no look-up, no lock.
public final class Counters: Sendable {
    /// All of ``Metric``, for who scrapes.
    public let registry: MetricRegistry
    /// By ``Counter/place``.
    private let handles: [CoreMetrics.Counter]
    private let cells: [CounterCell]
    private let opened: CoreMetrics.Counter
    private let valid: [CoreMetrics.Counter]
    private let validCells: [CounterCell]
    private let answerCells: [HistogramCell]
    private let reports: [CoreMetrics.Counter]
    private let latencies: [Latency?]
    private let postTime: CoreMetrics.Timer
    /// By ``KindLabel/place``.
    private let replyDelays: [CoreMetrics.Timer?]

    private let started = ContinuousClock.now
    /// When the last message came in: nanoseconds since the start.
    private let heard = Atomic<Int64>(0)

    private struct Latency: Sendable {
        let sinceReceipt: CoreMetrics.Timer?
        let sinceSent: CoreMetrics.Timer
    }

    public init() {
        let registry = MetricRegistry(Metric.allCases.map(\.definition))
        self.registry = registry
        // Those that show nowhere are cells of their own.
        cells = Counter.allCases.map { counter in
            counter.series.map { registry.counter($0.metric.rawValue, $0.labels.dimensions) } ?? CounterCell()
        }
        handles = zip(Counter.allCases, cells).map { counter, cell in
            CoreMetrics.Counter(
                label: counter.series?.metric.rawValue ?? "", dimensions: counter.series?.labels.dimensions ?? [], handler: cell,
                factory: registry)
        }
        opened = registry.counter(.opened)
        valid = KindLabel.allCases.map { registry.counter(.valid, $0) }
        validCells = KindLabel.allCases.map { registry.counter(Metric.valid.rawValue, [$0].dimensions) }
        answerCells = KindLabel.allCases.map { registry.histogram(Metric.sinceReceipt.rawValue, [StageLabel.answered, $0].dimensions) }
        reports = ReportLabel.allCases.map { registry.counter(.reports, $0) }
        postTime = registry.timer(.postTime)
        replyDelays = KindLabel.allCases.map { $0 == .registration ? nil : registry.timer(.replyDelay, $0) }
        latencies = StageLabel.allCases.flatMap { stage in
            KindLabel.allCases.map { kind in
                guard stage.concerns(kind) else { return nil }
                return Latency(
                    sinceReceipt: stage == .received ? nil : registry.timer(.sinceReceipt, stage, kind),
                    sinceSent: registry.timer(.sinceSent, stage, kind))
            }
        }
    }

    func add(_ counter: Counter, _ count: Int = 1) {
        guard count != 0 else { return }
        handles[counter.place].increment(by: count)
    }

    /// Of what was counted at all.
    public var snapshot: [Counter: Int] {
        var counts: [Counter: Int] = [:]
        for (counter, cell) in zip(Counter.allCases, cells) where cell.value != 0 { counts[counter] = Int(cell.value) }
        return counts
    }

    public func count(_ counter: Counter) -> Int { Int(cells[counter.place].value) }

    // MARK: Messages

    /// The relay brought so many.
    func received(_ count: Int) {
        add(.received, count)
        heard.store(started.duration(to: .now).nanoseconds, ordering: .relaxed)
    }

    /// Since the relay last brought a message; since the start, before the first.
    public var silence: Duration {
        started.duration(to: .now) - .nanoseconds(heard.load(ordering: .relaxed))
    }

    /// Messages were opened: those that ask for something, and others that did not come so far.
    func opened(_ works: [Work], others: Int) {
        guard !works.isEmpty || others > 0 else { return }
        opened.increment(by: works.count + others)
        var counts = [0, 0, 0]
        for work in works {
            counts[work.kind.place] += 1
            reached(.valid, work.kind, work.times)
            if let delay = work.times?.delay { latency(.received, work.kind)?.sinceSent.recordNanoseconds(delay.nanoseconds) }
        }
        for (handle, count) in zip(valid, counts) where count > 0 { handle.increment(by: count) }
    }

    /// How long it took so far.
    ///
    /// - Parameter held: the part of that time for which an answer waited on purpose.
    func reached(_ stage: StageLabel, _ kind: KindLabel, _ times: MessageTimes?, without held: Duration = .zero) {
        guard let times, let latency = latency(stage, kind) else { return }
        let elapsed = times.received.duration(to: .now) - held
        latency.sinceReceipt?.recordNanoseconds(elapsed.nanoseconds)
        if let delay = times.delay { latency.sinceSent.recordNanoseconds((delay + elapsed).nanoseconds) }
    }

    private func latency(_ stage: StageLabel, _ kind: KindLabel) -> Latency? {
        latencies[stage.place * KindLabel.allCases.count + kind.place]
    }

    /// An answer was known for so long before it was due.
    func held(_ kind: KindLabel, for time: Duration) {
        replyDelays[kind.place]?.recordNanoseconds(time.nanoseconds)
    }

    /// What a request is told.
    func reported(_ label: ReportLabel) {
        reports[label.place].increment()
    }

    /// Valid messages since the start, by ``KindLabel/place``.
    var validCounts: [Int] { validCells.map { Int($0.value) } }

    /// Answers since the start within each bound, and all at last.
    var answerTimes: [Int64] {
        answerCells.map(\.cumulativeCounts).reduce([]) { sum, counts in sum.isEmpty ? counts : zip(sum, counts).map(+) }
    }

    /// Seconds within which a half, and 99 of 100, of what was added between two such lists were answered; infinite beyond the last bound.
    func percentiles(from old: [Int64], to new: [Int64]) -> (half: Double, most: Double)? {
        let counts = zip(old, new).map { $1 - $0 }
        guard let all = counts.last, all > 0, case .histogram(let bounds) = Metric.sinceReceipt.definition.kind else { return nil }
        func bound(_ share: Double) -> Double {
            zip(bounds, counts).first { Double($1) >= share * Double(all) }?.0 ?? .infinity
        }
        return (bound(0.5), bound(0.99))
    }

    // MARK: gorush

    /// A post ended. There are few: its series is looked up.
    func posted(_ result: PostResult, took: Duration) {
        postTime.recordNanoseconds(took.nanoseconds)
        registry.counter(.posts, PostClassLabel(result), StatusLabel(result.status)).increment()
    }
}

extension MetricRegistry {
    func counter(_ metric: Metric, _ labels: any MetricLabel...) -> CoreMetrics.Counter {
        CoreMetrics.Counter(label: metric.rawValue, dimensions: labels.dimensions, factory: self)
    }

    func timer(_ metric: Metric, _ labels: any MetricLabel...) -> CoreMetrics.Timer {
        CoreMetrics.Timer(label: metric.rawValue, dimensions: labels.dimensions, factory: self)
    }

    /// Sets a gauge, or a counter that is read elsewhere; nil when it is not known.
    func set(_ metric: Metric, _ labels: any MetricLabel..., to value: Double?) {
        CoreMetrics.Meter(label: metric.rawValue, dimensions: labels.dimensions, factory: self).set(value ?? .nan)
    }
}

extension [any MetricLabel] {
    var dimensions: [(String, String)] {
        map { label in (type(of: label).labelName, label.rawValue) }
    }
}

extension StageLabel {
    /// Whether messages of this kind come there: queries store nothing, and only requests go to gorush.
    func concerns(_ kind: KindLabel) -> Bool {
        switch self {
        case .received, .valid, .answered: true
        case .durable: kind != .query
        case .accepted: kind == .request
        }
    }

    var place: Int {
        switch self {
        case .received: 0
        case .valid: 1
        case .durable: 2
        case .accepted: 3
        case .answered: 4
        }
    }
}

extension KindLabel {
    var place: Int {
        switch self {
        case .registration: 0
        case .query: 1
        case .request: 2
        }
    }
}

extension ReportLabel {
    var place: Int {
        switch self {
        case .success: 0
        case .unknownType: 1
        case .wrongToken: 2
        case .internalError: 3
        case .notRegistered: 4
        }
    }
}

extension PostClassLabel {
    init(_ result: PostResult) {
        switch result.outcome {
        case .accepted, .notPosted: self = .accepted
        case .refused: self = .refused
        case .failed: self = result.isOperatorsMistake ? .misconfigured : .failed
        }
    }
}
