import WakuPushCommands

/// The results, printed as a table or as JSON.
struct BenchReport: Encodable {
    let machine: Machine
    let results: [BenchResult]

    /// The failure that the command ends with if messages went unanswered.
    var unanswered: CommandFailure? {
        let lost = results.filter { ($0.unanswered ?? 0) > 0 }
        guard let first = lost.first, let count = first.unanswered else { return nil }
        return CommandFailure(
            .data,
            "\(count) of \(first.messages ?? 0) messages went unanswered (\(lost.map(\.name).joined(separator: ", "))): is the machine too busy?"
        )
    }

    func print(asJSON: Bool) throws {
        if asJSON { return try Output.json(self) }
        Output.line("\(machine.processor), \(machine.cores) cores, \(machine.system), \(machine.build) build")
        if machine.build == "debug" { Output.line("A debug build is many times slower: swift build -c release --product waku-push-bench") }
        Output.line()
        Output.table(
            [
                "NAME", "RATE/S", "CPU µs", "FLOOR µs", "LIMIT µs", "RATIO", "SPREAD", "CPU AT 1/4", "CPU AT 1/2", "AT/S", "P50 µs",
                "P99 µs", "P99.9 µs", "RSS MiB",
            ],
            results.map { result in
                [
                    result.name, Self.number(result.rate), Self.number(result.cpuMicroseconds), Self.number(result.floorMicroseconds),
                    Self.number(result.limitMicroseconds), Self.number(result.ratioToFloor), Self.spread(result.ratiosToFloor),
                    Self.number(result.cpuMicrosecondsAtQuarter), Self.number(result.cpuMicrosecondsAtHalf),
                    Self.number(result.latencyRate), Self.number(result.latencies?.percentile(0.5)),
                    Self.number(result.latencies?.percentile(0.99)), Self.number(result.latencies?.percentile(0.999)),
                    result.residentBytes.map { "\($0 >> 20)" } ?? "",
                ]
            })
        let notes = results.compactMap { result in result.note.map { "\(result.name): \($0)" } }
        if !notes.isEmpty { Output.line() }
        for note in notes { Output.line(note) }
    }

    /// The lowest and the highest value of several rounds.
    private static func spread(_ values: [Double]) -> String {
        guard values.count > 1, let lowest = values.min(), let highest = values.max() else { return "" }
        return "\(number(lowest))–\(number(highest))"
    }

    /// About three significant digits.
    private static func number(_ value: Double?) -> String {
        guard let value else { return "" }
        if abs(value) >= 100 { return "\(Int(value.rounded()))" }
        return abs(value) >= 10 ? "\((value * 10).rounded() / 10)" : "\((value * 100).rounded() / 100)"
    }
}
