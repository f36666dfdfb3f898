/// Why something could not be measured. The message says how to fix it.
public struct BenchError: Error, Hashable, Sendable, CustomStringConvertible {
    public enum Code: Hashable, Sendable {
        /// The data folder can't be used.
        case disk
        /// A port or a started process is unavailable.
        case unavailable
        /// Messages went unanswered, so the figures are invalid.
        case unanswered
    }

    public let code: Code
    public let message: String
    public var description: String { message }

    init(code: Code, message: String) {
        self.code = code
        self.message = message
    }

    static let disk = BenchError(
        code: .disk, message: "the benchmark can't write to the disk: is it full? Choose another folder with --data")
}
