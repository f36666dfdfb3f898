import NodeAPI
package import ArgumentParser
import Foundation
import Delivery
import LoopbackServer
import Core
import NwakuRelay
import PushClient
import SessionProtocol
import StatusGoImport
import Storage

/// The failure of a command: a message of one line and an exit code of sysexits.h.
package struct CommandFailure: Error {
    package enum Code: Int32, CaseIterable {
        case usage = 64
        case data = 65
        case unavailable = 69
        case cannotCreate = 73
        case output = 74
        case permission = 77

        private var meaning: String {
            switch self {
            case .usage: "wrong usage"
            case .data: "unusable key, configuration file, database or answer"
            case .unavailable: "a required service is unavailable"
            case .cannotCreate: "a file or folder can't be made"
            case .output: "the output can't be written"
            case .permission: "permission denied"
            }
        }

        /// The codes and their meanings as help prints them, a line each.
        static let list = allCases.map { "\($0.rawValue)  \($0.meaning)" }.joined(separator: "\n  ")
    }

    let code: Code
    let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    static let outputFailed = CommandFailure(.output, "can't write to standard output")

    init(_ error: StoreError) {
        let code: Code =
            switch error.code {
            case .invalid: .usage
            case .cannotCreate: .cannotCreate
            case .permission: .permission
            case .locked, .full, .unavailable: .unavailable
            case .unsuitable, .missing, .newer, .otherIdentity, .damaged: .data
            }
        self.init(code, error.message)
    }

    init(_ error: PushClientError) {
        let code: Code =
            switch error.code {
            case .badAnswer: .data
            case .invalid, .notEnabled: .usage
            case .notPublished, .noAnswer, .noServerKnown, .cancelled: .unavailable
            case .notRunning: .unavailable
            }
        self.init(code, error.code == .noServerKnown ? "\(error.message) with --server" : error.message)
    }
}

/// A command that reports an error as one line on standard error and an exit code. An invalid configuration has a line for each of its errors, and
/// the exit code of the first.
package protocol ReportingCommand: AsyncParsableCommand {
    /// Whether errors of the configuration file and of values are reported before the command runs. false if it reports them together with others.
    static var checksOptions: Bool { get }

    func execute() async throws
}

extension ReportingCommand {
    package static var checksOptions: Bool { true }

    package func run() async throws {
        do {
            if Self.checksOptions { try ConfigurationFailures(Environment.problems).finish() }
            try await execute()
        } catch let invalid as InvalidConfiguration {
            for failure in invalid.failures { CommandFailure.report(failure.message) }
            throw ExitCode(invalid.failures[0].code.rawValue)
        } catch {
            guard let failure = CommandFailure(explaining: error) else { throw error }
            CommandFailure.report(failure.message)
            throw ExitCode(failure.code.rawValue)
        }
    }
}

/// An error of another module that commands report on one line.
package protocol ReportedError: Error {
    var failure: CommandFailure { get }
}

extension CommandFailure {
    /// Writes one line to standard error. Control characters that the message quotes from files, arguments or peers are escaped.
    static func report(_ message: String) {
        _ = Invocation.current.writeError("\(Invocation.current.program): \(Output.printable(message))\n")
    }

    /// nil for errors that ArgumentParser reports itself.
    init?(explaining error: any Error) {
        switch error {
        case let failure as CommandFailure: self = failure
        case let error as StoreError: self.init(error)
        case let error as any ReportedError: self = error.failure
        case let error as PushClientError: self.init(error)
        case let error as StatusGoImportError: self.init(.data, error.message)
        case let error as NodeError: self.init(.unavailable, error.message)
        case let error as LoopbackServerError: self.init(.unavailable, "--loopback-listen: \(error.message)")
        case let error as NwakuRelayError: self.init(.usage, error.message)
        case let error as GorushError: self.init(.usage, error.message)
        case let error as OptionalLibraryError: self.init(.unavailable, error.description)
        case let error as StorageServerFile.Failure: self.init(.data, error.description)
        default: return nil
        }
    }
}
