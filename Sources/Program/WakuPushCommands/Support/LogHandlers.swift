public import ArgumentParser
// `stat` is not declared without this if the compiler reads a file with `import Dispatch` first.
import CDispatch
import Foundation
public import Logging
import PushNode

enum LogFormat: String, ExpressibleByArgument, CaseIterable {
    case text
    case json
}

extension Logger.Level: @retroactive ExpressibleByArgument {}

/// Writes a line per record to standard error: `2026-01-02T03:04:05.678Z info node started key=…`, or the same as JSON, in which numbers and
/// booleans of the metadata are numbers and booleans. Lines for systemd's journal begin with their priority: see ``JournalStream``.
struct LineLogHandler: LogHandler {
    let format: LogFormat
    let level: LogLevel
    /// The level set on this logger only.
    private(set) var ownLevel: Logger.Level?
    var metadata: Logger.Metadata = [:]

    var logLevel: Logger.Level {
        get { ownLevel ?? level.current }
        set { ownLevel = newValue }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let fields = metadata.merging(event.metadata ?? [:]) { _, new in new }.sorted { $0.key < $1.key }
        LogStream.standardError.write(line(event.level, event.message.description, fields.map { ($0.key, $0.value) })) { count in
            line(
                .warning, "log lines dropped",
                [("count", .stringConvertible(count)), ("reason", "the log was not read, or could not be written")])
        }
    }

    private func line(_ level: Logger.Level, _ message: String, _ fields: [(name: String, value: Logger.MetadataValue)]) -> String {
        let time = Date().formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
        let line = Self.line([("time", time), ("level", level.rawValue), ("message", message)], fields: fields, format: format)
        return (JournalStream.isStandardError ? "<\(level.journalPriority)>" : "") + line + "\n"
    }

    /// - Parameter head: time, level and message, written without their names in text format.
    static func line(
        _ head: [(name: String, value: String)], fields: [(name: String, value: Logger.MetadataValue)], format: LogFormat
    ) -> String {
        switch format {
        case .text:
            Output.printable((head.map(\.value) + fields.map { "\($0.name)=\(quoted($0.value.description))" }).joined(separator: " "))
        case .json: Output.printableJSON(json(head.map { ($0.name, .string($0.value)) } + fields).utf8)
        }
    }

    private static func quoted(_ text: String) -> String {
        // JSON escapes the control characters below U+0020; `printable` escapes the others.
        text.unicodeScalars.contains { $0.properties.isWhitespace || $0.value < 0x20 || $0 == "\"" || $0 == "=" } ? json(text) : text
    }

    private static func json(_ fields: [(name: String, value: Logger.MetadataValue)]) -> String {
        "{" + fields.map { "\(json($0.name)):\(json($0.value))" }.joined(separator: ",") + "}"
    }

    private static func json(_ value: Logger.MetadataValue) -> String {
        guard case .stringConvertible(let value) = value else { return json(value.description) }
        return switch value {
        case let value as any BinaryInteger: "\(value)"
        case let value as Double where value.isFinite: "\(value)"
        case let value as Bool: "\(value)"
        default: json(value.description)
        }
    }

    private static func json(_ text: String) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .withoutEscapingSlashes
        return (try? encoder.encode(text)).map { String(decoding: $0, as: UTF8.self) } ?? "\"\""
    }
}

/// Whether output goes to systemd's journal, which then reads a priority from the beginning of each line: `<3>` for errors, as in syslog. See
/// sd-daemon(3) and `JOURNAL_STREAM` in systemd.exec(5).
enum JournalStream {
    /// Whether standard error is the stream that systemd connected to the journal.
    static let isStandardError: Bool = {
        var status = stat()
        guard fstat(StandardStream.error, &status) == 0 else { return false }
        return matches(ProcessInfo.processInfo.environment["JOURNAL_STREAM"], device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
    }()

    /// - Parameter variable: `JOURNAL_STREAM`: device and inode, decimal, with a colon between them.
    static func matches(_ variable: String?, device: UInt64, inode: UInt64) -> Bool {
        let numbers = (variable ?? "").split(separator: ":", omittingEmptySubsequences: false).map { UInt64($0) }
        return numbers == [device, inode]
    }
}

extension Logger.Level {
    /// The level as syslog's priority, from 2 (critical) to 7 (debug).
    var journalPriority: Int {
        switch self {
        case .trace, .debug: 7
        case .info: 6
        case .notice: 5
        case .warning: 4
        case .error: 3
        case .critical: 2
        }
    }
}

extension Logger {
    /// Prints warnings and errors, for clients and demos.
    package static let warnings = Logger(label: "waku-push") { _ in LineLogHandler(format: .text, level: LogLevel(.warning)) }
}
