import ArgumentParser
import Delivery
import Foundation
import NodeAPI
import NodeAssembly
import Storage

/// The options of the protocols that a node may speak besides Status.
struct ProtocolOptions {
    let all: [any OptionalProtocolOptions]

    /// Configures the protocols that are on.
    func apply(to configuration: inout ServerConfiguration, _ failures: ConfigurationFailures) {
        for options in all {
            options.check(failures)
            failures.check { try options.apply(to: &configuration) }
        }
    }

    /// Whether the enabled protocols can be served without a Waku network.
    var areServedWithoutRelay: Bool { all.contains { $0.isOn && $0.isServedWithoutRelay } }

    /// The settings of the protocols that are on: see `AdminAPI.Setup`.
    var settings: [String: [String: String]] {
        Dictionary(uniqueKeysWithValues: all.filter(\.isOn).map { (type(of: $0).protocolName, $0.settings) })
    }
}

/// The options of a protocol, and the findings of `doctor` on them.
protocol OptionalProtocolOptions: ParsableArguments {
    static var protocolName: String { get }
    var isOn: Bool { get }
    /// Whether the protocol serves its clients without a Waku network.
    var isServedWithoutRelay: Bool { get }
    /// Files and addresses, without secrets.
    var settings: [String: String] { get }

    /// Sets the protocol's configuration if it is on.
    ///
    /// - Throws: ``CommandFailure``, and errors of files and libraries.
    func apply(to configuration: inout ServerConfiguration) throws
    /// Checks the options one by one, before ``apply(to:)`` checks all of them.
    func check(_ failures: ConfigurationFailures)
    func findings(_ examination: ProtocolExamination) async -> [Finding]
}

/// The facts from which `doctor` derives findings on a protocol.
struct ProtocolExamination {
    /// The settings of the daemon's optional protocols by name; nil without a daemon, or from one of an older release.
    let daemon: [String: [String: String]]?
    /// Findings of the daemon; empty if none runs.
    let daemonFindings: [Finding]
    /// What the daemon says of its protocols; empty if none runs.
    let daemonFacts: [ProtocolFact]
    /// nil if there is no database, or it can't be read, which is a separate finding.
    let store: (any Store)?
    /// The endpoints that the options give; nil if a daemon runs, which checks its own.
    let routing: EndpointRouting?
}

/// The absolute path, so that `doctor` can find a file from another folder.
func absolutePath(_ path: String) -> String { URL(fileURLWithPath: path).path }
