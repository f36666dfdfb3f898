/// Why something could not be measured. The message says how to mend it.
public struct BenchError: Error, Hashable, Sendable, CustomStringConvertible {
    public enum Code: Hashable, Sendable {
        /// The folder for the data can't be used.
        case disk
        /// A port, or a process that was started.
        case unavailable
        /// Messages went unanswered: what was measured is worth nothing.
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
        code: .disk, message: "the disk does not take what is measured: is it full? Choose another folder by --data")
}
