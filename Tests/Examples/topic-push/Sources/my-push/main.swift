import Foundation
import TopicPush
import WakuPushNode

exit(await WakuPushProgram.run(adding: [TopicPush.description], name: "my-push"))
