import TestSupport
import Core
import Waku
import WakuCrypto

/// Replays all recorded flows in order on one node: each builds on the previous ones.
struct FlowReplay {
    /// The results of one flow's messages.
    struct Outcome {
        let expected: ExpectedFlow
        fileprivate(set) var answers: [PlainNode.Answer] = []
        /// Number of answers after each message.
        fileprivate(set) var answersAfter: [Int] = []
        fileprivate(set) var notified: [PlainNode.Notified] = []
    }

    struct NoSuchFlow: Error {
        let name: String
    }

    /// Replayed once for all tests.
    static let recorded = Result { try FlowReplay(StatusGoVectors.recorded) }

    /// The names of the flows, in order. Repeated names get a number.
    static let names: [String] = {
        var counts: [String: Int] = [:]
        return StatusGoVectors.recorded.flows.map { flow in
            counts[flow.name, default: 0] += 1
            let count = counts[flow.name] ?? 1
            return count == 1 ? flow.name : "\(flow.name)_\(count)"
        }
    }()

    let server: PublicKey
    private let flows: [String: StatusGoVectors.Flow]
    private(set) var outcomes: [String: Outcome] = [:]

    private init(_ vectors: StatusGoVectors) throws {
        let identity = try vectors.pair("server")
        server = identity.publicKey
        flows = Dictionary(uniqueKeysWithValues: zip(Self.names, vectors.flows))
        var node = PlainNode(identity: identity)
        for (name, flow) in zip(Self.names, vectors.flows) {
            outcomes[name] = try play(flow, FlowDeviation.all[name], to: &node)
        }
    }

    func flow(_ name: String) throws -> StatusGoVectors.Flow {
        guard let flow = flows[name] else { throw NoSuchFlow(name: name) }
        return flow
    }

    func outcome(of name: String) throws -> Outcome {
        guard let outcome = outcomes[name] else { throw NoSuchFlow(name: name) }
        return outcome
    }

    private func play(_ flow: StatusGoVectors.Flow, _ deviation: FlowDeviation?, to node: inout PlainNode) throws -> Outcome {
        var outcome = Outcome(expected: try ExpectedFlow(flow, deviation: deviation, in: self))
        let before = node.notified.count
        if case .reports(_, .later) = deviation { node.gorushAccepts = false }
        for message in flow.wireIn {
            guard let proto = message.wakuMessage?.proto else { throw ExpectedFlow.Incomplete() }
            if let answer = try node.receive(WakuMessage(parsing: proto.bytes)) { outcome.answers.append(answer) }
            outcome.answersAfter.append(outcome.answers.count)
        }
        node.gorushAccepts = true
        outcome.notified = Array(node.notified[before...])
        return outcome
    }
}
