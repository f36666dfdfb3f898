import Core
import Waku
import WakuCrypto

extension StatusPushClient {
    /// Stays attached until cancelled: what is to be registered, advertised and sent goes out, answers come in.
    ///
    /// Cancelling leaves everything as a kill would: what was on its way goes on when this is called again, or at the next start of the process.
    /// While another call runs, this one waits for the end of that.
    public func run() async {
        // Answers to what was sent before may still come.
        let isAwaiting = runner.read { machine, _ in machine.registrations.servers.values.contains { $0.attempt != nil } }
        if isAwaiting { network.watching.keep([Self.answerTopic(identity.publicKey)]) }
        await runner.run(network.relay, deliver: { [self] in take($0) }, perform: { [self] in begin($0, in: &$1) })
    }

    /// Events from now on. A consumer that does not keep up misses the oldest of more than a thousand.
    public var events: AsyncStream<PushClientEvent> { runner.events }

    func turn(_ body: (inout ClientMachine, Timestamp) -> ClientOutput) {
        runner.turn { (body(&$0, $1), ()) }
    }

    func report(_ event: PushClientEvent) {
        runner.report(event)
    }
}
