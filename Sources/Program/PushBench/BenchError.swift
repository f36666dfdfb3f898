import WakuPushCommands

/// Why something could not be measured. The message says how to fix it.
struct BenchError: Error, Hashable, Sendable, CustomStringConvertible {
    enum Code: Hashable, Sendable {
        /// The data folder can't be used.
        case disk
        /// A port or a started process is unavailable.
        case unavailable
        /// Messages went unanswered, so the figures are invalid.
        case unanswered
    }

    let code: Code
    let message: String
    var description: String { message }

    static let disk = BenchError(
        code: .disk, message: "the benchmark can't write to the disk: is it full? Choose another folder with --data")
}

extension BenchError: ReportedError {
    var failure: CommandFailure {
        let exitCode: CommandFailure.Code =
            switch code {
            case .disk: .cannotCreate
            case .unavailable: .unavailable
            case .unanswered: .data
            }
        return CommandFailure(exitCode, message)
    }
}
