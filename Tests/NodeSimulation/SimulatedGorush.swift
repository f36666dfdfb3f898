import Core
import Delivery

/// gorush as the node sees it. The environment decides the outcome of a post.
struct SimulatedGorush: NotificationPosting, @unchecked Sendable {
    var certificateEnd: Int? { nil }
    let world: World
    let process: NodeProcess

    func post(_ notifications: [Notification]) async -> PostResult {
        let post = world.beginPost(notifications, from: process)
        let isAnswered = await world.pause(post.duration)
        return world.endPost(post, isAnswered: isAnswered)
    }

    func healthFailure() async -> String? {
        await world.pause(.milliseconds(5))
        return world.gorushFault == .down ? "the simulated gorush is down" : nil
    }
}
