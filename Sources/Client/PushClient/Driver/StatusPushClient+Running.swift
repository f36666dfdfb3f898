import Core
import Waku
import WakuCrypto

extension StatusPushClient {
    /// Runs until cancelled: registers, advertises, sends requests, and receives answers.
    ///
    /// After a cancellation, as after a kill, unfinished work resumes with the next call or the next start of the process.
    /// If another call is running, waits for it to end first.
    public func run() async {
        // Answers to earlier requests may still arrive.
        let isAwaiting = runner.read { machine, _ in machine.registrations.servers.values.contains { $0.attempt != nil } }
        if isAwaiting { network.watching.keep([Self.answerTopic(identity.publicKey)]) }
        await runner.run(network.relay, deliver: { [self] in take($0) }, perform: { [self] in begin($0, in: &$1) })
    }

    /// Events from now on. Beyond a thousand unread events, the oldest are dropped.
    public var events: AsyncStream<PushClientEvent> { runner.events }

    func turn(_ body: (inout ClientMachine, Timestamp) -> ClientOutput) {
        runner.turn { (body(&$0, $1), ()) }
    }

    func report(_ event: PushClientEvent) {
        runner.report(event)
    }
}
